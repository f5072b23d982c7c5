"""Jobs of a Kubernetes cluster, with run directories on a volume that Lynceus and all pods mount under the same path.

options    the section `executor` of a job file
objects    the Job of a run, and what Kubernetes says about it: pure functions
client     questions to the API server, asked with the official client
executor   launch, collect, cancel, clean up
"""

from lynceus.executors.kubernetes.executor import PLUGIN as PLUGIN
