"""Jobs over HTTP: what clients ask for, what they see of a job, and the routes of /jobs."""
