"""The admin pages."""

from django.contrib import admin

from workshop.models import Customer, Order


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    """Customers, searched by name."""

    list_display = ("name", "email", "city", "newsletter")
    list_filter = ("city", "newsletter")
    search_fields = ("name", "email")


@admin.action(description="Mark selected orders as done")
def mark_done(_admin, _request, orders) -> None:
    """An action of the list."""
    orders.update(status=Order.Status.DONE)


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    """Orders, with an action."""

    list_display = ("title", "customer", "status", "price", "due")
    list_filter = ("status",)
    search_fields = ("title", "customer__name")
    ordering = ("id",)
    actions = (mark_done,)
