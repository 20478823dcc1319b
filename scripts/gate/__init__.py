"""What `scripts/check` is made of: its ledger, its pool of jobs, what cargo builds, and what a step depends on."""
