"""From a request to a page: candidates → score (with reason) → diversity."""
