"""All that draws or prints: tables, verdicts, exports, pages and the site of a history."""
