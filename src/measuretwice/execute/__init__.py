"""Many trials: in a pool, on a cluster; and recorded."""
