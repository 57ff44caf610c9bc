"""What OpenWOP's own scenarios drive a memory host by. It is there only in a server that was started for it.

Everything goes through the MemoryAdapter: what a scenario finds out holds for every other caller, too.
"""
