"""The workshop's data."""

from django.db import models


class Customer(models.Model):
    """Somebody who has something repaired."""

    name = models.CharField(max_length=80)
    email = models.EmailField()
    city = models.CharField(max_length=80)
    newsletter = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    """A repair."""

    class Status(models.TextChoices):
        """The state of an order."""

        OPEN = "open", "Open"
        IN_PROGRESS = "progress", "In progress"
        DONE = "done", "Done"

    title = models.CharField(max_length=120)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    due = models.DateField()
    notes = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.title
