"""Worker processes: the folder ``worker`` runs in them; the other modules are the host's side.

* ``pool``: one backend in the host, jobs in and outcomes out
* ``bisection``: finds the instance that makes a model fail
* ``history``: what a process has served
* ``info``: what a backend declares
* ``watch``: deadlines
* ``spec``: where a backend class is and where it runs
* ``process``: the worker processes of one backend
* ``wire``: the host's side of the protocol
"""
