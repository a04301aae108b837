"""The participant `computer_use`: operates the page by screenshots and coordinates, with a provider's own tool."""
