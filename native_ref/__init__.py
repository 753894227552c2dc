"""The reference runtime: every op family as a kernel that computes wide and rounds once.

Arrays are NumPy arrays of any type ``harness.core.dtypes`` lists.  The compiled half is ``_opconform_native``.
"""

import _opconform_native as _native

isa: str = _native.isa
