"""A small project as a newcomer has it, tested as the documentation says, in processes of its own."""
