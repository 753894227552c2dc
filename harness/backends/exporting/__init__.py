"""Files of formats that only their own package writes.

``mlpackage.py`` runs inside a worker, as backends do.  ``onnx_files.py`` is used as it is.
"""
