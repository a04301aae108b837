"""A trip planner. All its state is in the browser's session."""

import time

import pandas as pd
import streamlit as st

TRIPS = pd.DataFrame(
    {
        "place": ["Lisbon", "Oslo", "Turin", "Ghent", "Porto", "Bergen", "Genoa", "Bruges"],
        "country": ["Portugal", "Norway", "Italy", "Belgium"] * 2,
        "days": [4, 6, 3, 2, 5, 7, 4, 2],
        "price": [420, 780, 350, 240, 460, 910, 390, 260],
    }
)

st.set_page_config(page_title="Trip planner")
st.title("Trip planner")
with st.sidebar:
    country = st.selectbox("Country", ["All", *sorted(TRIPS["country"].unique())])
    longest = st.slider("Longest trip in days", 2, 7, 7)
    with_prices = st.checkbox("Show prices")

found = TRIPS[(TRIPS["days"] <= longest) & ((country == "All") | (TRIPS["country"] == country))]
st.write(f"{len(found)} trips found")
st.table(found if with_prices else found.drop(columns="price"))

search, book, guide = st.tabs(["Summary", "Book", "Guide"])
with search:
    if st.button("Compute the average"):
        with st.spinner("Computing"):
            time.sleep(1.5)
        st.success(f"The average trip has {found['days'].mean():.2f} days")
with book:
    with st.form("booking"):
        name = st.text_input("Name")
        place = st.radio("Place", ["Lisbon", "Oslo", "Turin"], horizontal=True)
        persons = st.number_input("Persons", 1, 9, 1)
        sent = st.form_submit_button("Send booking")
    if sent:
        if name:
            st.info(f"Booked for {name}: {place}, {persons} persons")
        else:
            st.error("Please give a name")
with guide, st.expander("What to pack"):
    extras = st.multiselect("Extras", ["Boots", "Map", "Tent", "Umbrella"])
    st.write(f"Packed: {', '.join(extras) or 'nothing'}")
