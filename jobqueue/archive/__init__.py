"""The archive: pruned jobs as JSON Lines, in a folder or a storage, with a compressed file for each day and status.

While a day's jobs are pruned, they are in parts. ``pack`` merges the parts of a day into its file. Each file is written
whole or not at all, and nothing is deleted before what replaces it is stored.
"""
