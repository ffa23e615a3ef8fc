"""A trainer to be killed: endless_trainer.py SOCKET JOB COUNT [--with-child | --hub | --algorithm NAME].

All-reduces COUNT float32 elements again and again; with --hub, it pushes them to key "endless" of a hub. Says "joined"
once it is in the job. With --with-child, a child that it has forked keeps its sockets open after its death, until its
standard input ends.
"""

import os
import sys

import gradcube
import numpy

socket, job, count, *options = sys.argv[1:]
algorithm = options[1] if options[:1] == ["--algorithm"] else None
with gradcube.Session(socket, job, algorithm=algorithm) as session:
    if options == ["--with-child"] and os.fork() == 0:
        sys.stdout.close()
        sys.stdin.read()
        os._exit(0)
    gradients = session.alloc(int(count))
    gradients.fill(1)
    print("joined", flush=True)
    if options == ["--hub"]:
        hub = gradcube.Hub(session, {"endless": numpy.zeros(int(count), "float32")})
        while True:
            hub.push("endless", gradients)
    while True:
        session.allreduce(gradients, op="max")
