"""What people see of captures: logs and explanations, all of them views of events."""
