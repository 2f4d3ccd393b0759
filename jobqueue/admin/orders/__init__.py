"""The pages of orders: their list, and a page for each."""
