"""What was recorded, shown: a table where people read, Markdown for pages, JSON for programs. Knows records only."""
