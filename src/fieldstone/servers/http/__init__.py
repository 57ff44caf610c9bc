"""The HTTP server: the routes of the contract, on Starlette's routing and uvicorn."""
