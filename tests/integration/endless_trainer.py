"""A trainer to be killed: endless_trainer.py SOCKET JOB COUNT.

All-reduces COUNT float32 elements again and again. Says "joined" once it is in the job.
"""

import sys

import gradcube

socket, job, count = sys.argv[1:]
with gradcube.Session(socket, job) as session:
    gradients = session.alloc(int(count))
    gradients.fill(1)
    print("joined", flush=True)
    while True:
        session.allreduce(gradients, op="max")
