"""`python -m fieldstone` is `fieldstone`."""

from fieldstone.cli.main import main

if __name__ == "__main__":
    main()
