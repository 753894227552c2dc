"""The ledger: known differences and ambiguities, their predicates and defect models, saved instances."""
