"""The Field API that people hold in their hands: the same for a store in this process and for a server elsewhere."""
