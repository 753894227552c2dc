"""Integer arithmetic under affine quantisation, as TFLite specifies it."""
