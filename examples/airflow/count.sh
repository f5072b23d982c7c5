# Counts primes in as many pieces as the configuration says; "slow" as an argument makes it take a few seconds.
set -eu
if [ "${1:-}" = slow ]; then sleep 5; fi
for chunk in $(seq "$LYNCEUS_PARAM_CHUNKS"); do
  seq 2 $((2000 / LYNCEUS_PARAM_CHUNKS)) | while read -r n; do factor "$n"; done | awk 'NF == 2' | wc -l
done
echo "run $LYNCEUS_RUN_ID with version $LYNCEUS_JOB_VERSION"
