"""A trainer to be killed: endless_trainer.py SOCKET JOB COUNT [--with-child].

All-reduces COUNT float32 elements again and again. Says "joined" once it is in the job. With --with-child, a child
that it has forked keeps its sockets open for some seconds after its death.
"""

import os
import sys
import time

import gradcube

socket, job, count, *options = sys.argv[1:]
with gradcube.Session(socket, job) as session:
    if options == ["--with-child"] and os.fork() == 0:
        sys.stdout.close()
        time.sleep(6)
        os._exit(0)
    gradients = session.alloc(int(count))
    gradients.fill(1)
    print("joined", flush=True)
    while True:
        session.allreduce(gradients, op="max")
