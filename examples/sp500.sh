#!/usr/bin/env bash
# Which companies are in the same sector? Probabilities from stock prices, in a shell.
#
#     bash examples/sp500.sh FOLDER_WITH_THE_DATA [OUTPUT_FOLDER]
#
# The folder holds sp500_prices.csv (a date column, then a column of prices per ticker),
# sp500_sectors.csv (ticker, sector) and sp500_split.json (tickers_train, tickers_test).
# Distances are 1 - |correlation of daily log returns|; two companies of one sector are joined.
set -euo pipefail
data=$1
out=${2:-sp500-output}
mkdir -p "$out"

# Learn from the 40 training companies. The model remembers metric and preprocess.
edgebelief fit "$data/sp500_prices.csv" --preprocess log-returns --metric correlation \
    --nodes "$data/sp500_split.json:tickers_train" --groups "$data/sp500_sectors.csv" \
    --out "$out/model.eb" --force

# Predict the edges among the 42 others: the probability of every pair, and a graph with an expected
# share of false edges of at most 5 %.
edgebelief predict "$out/model.eb" "$data/sp500_prices.csv" \
    --nodes "$data/sp500_split.json:tickers_test" --out "$out/edges.csv" --force
edgebelief predict "$out/model.eb" "$data/sp500_prices.csv" \
    --nodes "$data/sp500_split.json:tickers_test" --fdr 0.05 --out "$out/graph.graphml" --force

# Their sectors are known too, so the predictions can be scored. Write a report.
edgebelief score "$out/model.eb" "$data/sp500_prices.csv" \
    --nodes "$data/sp500_split.json:tickers_test" --groups "$data/sp500_sectors.csv"
edgebelief report "$out/model.eb" "$data/sp500_prices.csv" \
    --nodes "$data/sp500_split.json:tickers_test" --groups "$data/sp500_sectors.csv" \
    --title "Which companies are in the same sector?" --out "$out/report.html" --force
