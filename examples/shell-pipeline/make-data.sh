# Write data.txt: 150,000 lines that look like a web server log, the same on every machine.
test -s data.txt && exit 0
awk 'BEGIN {
  seed = 42
  for (line = 0; line < 150000; line++) {
    seed = (seed * 16807) % 2147483647
    a = int(seed / 256)
    seed = (seed * 16807) % 2147483647
    b = int(seed / 256)
    printf "%d.%d.%d.%d GET /item/%d?from=%d %d\n", a % 223 + 1, b % 256, a % 17, b % 11, (a * b) % 9973, b % 100, 200 + (a % 5) * 50
  }
}' > data.txt.new && mv data.txt.new data.txt
