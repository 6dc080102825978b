"""Reasons: why the claim of a figure does not hold here, by paper and number of the figure.

Written by hand, from what was counted and timed apart from the figures; a guess says that it is
one. A reason is shown where its claim does not hold or cannot be told.
"""

from __future__ import annotations

GEM = {
    "11": "At M = 6 the two differ by less than two measurements do (2.36 and 2.23 ms): of 6 "
    "attributes few plans have to be compared. From M = 10 on the optimal one is slower, as in the "
    "paper: 1.1 times at 10, 1.9 at 14, 20 at 18, 72 at 20.",
    "4": "It is the caches that save less. Counted at 1M, over 20 events: without caches GEM "
    "excludes 901,000 entries at 1.0 ns each and looks 225,000 times at one of 113,000 candidates "
    "at 6 ns each: 0.9 and 1.4 ms. 20 caches leave 59,000 entries to exclude, 0.1 ms, and the "
    "candidates as they are, so they cannot save more than 0.9 of 2.3 ms; the paper's 78 % say "
    "that excluding was nearly all of its time. For TAMA the counts have the paper's factor, 5.2M "
    "counters to 1.13M entries and looks, 4.6 times as many; but adding to a counter of one byte "
    "takes 0.7 ns here.",
    "5": "The paper's deviations cannot be those of single events: TAMA's 18.7 ms are 1 % of its "
    "time, but the constraints that an event meets, which TAMA counts one by one, deviate by 18 % "
    "(990,000 ± 174,000 at 200,000 subscriptions, 120 events); 1 % is about what a mean of 500 "
    "events has. Here they are of single events. What GEM excludes hardly deviates (184,000 ± "
    "15,000), the looks at candidates do (25,600 ± 25,900), and these are more than half of its "
    "time (figure 4), TAMA and REIN only count and mark.",
    "6": "The order and the trends hold, it is the caches that save less. At M = 20 they cut the "
    "entries to exclude from 959,000 to 74,000 and their time from 1.2 to 0.1 ms; the 64,000 looks "
    "at candidates, 0.6 ms, stay. At M = 10 there are 225,000 looks, 1.4 ms, which stay too. If 20 "
    "caches save 78 % in the paper, looks were next to nothing there.",
    "7": "The order holds on average (at θ = 0.7 REIN is as fast as GEM without caches), the "
    "trends hold; it is the caches that save less, and the less the wider the intervals: at θ = "
    "0.1 they cut excluding from 1.0 to 0.1 ms and leave 101,000 looks at candidates, 0.6 ms; at "
    "θ = 0.7 excluding goes from 1.1 to 0.3 ms and 141,000 looks take 1.9 ms, 13 ns each, as "
    "90,000 subscriptions match and are compared to the end.",
    "8": "20 caches cost less than in the paper: a cache is a bit set here, so that a subscription "
    "costs one more bit for each attribute and cache, set while it is placed; in the paper it is "
    "one more reference in a list each.",
    "9": "To delete from a cache is to clear a bit here, not to search a list of references, so "
    "that the caches cost a fifth (10) and half (20) more, not 4 and 8 times as much. The order "
    "holds, and more: TAMA and H-Tree search 110 and 125 lists for a subscription, with 10 and 13 "
    "times as many entries as there are subscriptions (counted at 100,000), REIN 20 lists with 4 % "
    "as many.",
    "10": "The structure without the constraints, which every algorithm keeps and which are 213 of "
    "the bytes, takes 444 bytes a subscription (TAMA), 506 (H-Tree), 241 (REIN), 102, 115 and 127 "
    "(GEM): TAMA 4.4 times as much as GEM. A cache is a bit for each subscription and attribute, "
    "10 attributes and 10 caches make 12.5 bytes, where the paper's references make 1 KB.",
}

DEXIN = {
    "2": "The order holds, TAMA is too fast for the factor. Counted at 1M, over 20 events: TAMA "
    "adds to 4.9M counters, DEXIN excludes 895,000 entries and looks 153,000 times at one of "
    "105,000 candidates: 4.7 times fewer, nearly the paper's 5.0. But a counter of one byte takes "
    "0.9 ns here, an excluded entry 0.9 ns and a look 7 ns.",
    "3": "As with GEM, single events deviate more than the paper's numbers: at 200,000 "
    "subscriptions the constraints an event meets, which TAMA counts, by 16 % (930,000 ± 146,000), "
    "DEXIN's looks at candidates by as much as they are (24,000 ± 25,000).",
    "6": "DEXIN's plan takes an excluded entry and a look at a candidate to cost the same; here "
    "they take 0.9 and 7 ns. Counted at θ = 0.9: it excludes by 4.4 attributes, 1.0M entries in "
    "0.9 ms, and looks 367,000 times, 2.7 ms; excluding by all ten attributes would take 2.3 ms in "
    "all. At θ = 0.1 it looks 44,000 times, 0.4 ms. H-Tree keeps a subscription 15 times at θ = "
    "0.1 and reads 11 % of all for an event, each checked at its own place in memory for about 70 "
    "ns, where TAMA counts for 1 ns; at 0.9 it would not fit.",
    "7": "DEXIN estimates a matching rate with the value's own bucket as not matching (formula 3). "
    "With Zipf values that bucket is full: counted at 200,000, the attribute it begins with has an "
    "estimated rate of 0.9 % and a real one of 33 %, so a third of all stay candidates, at 1M "
    "334,000 of them instead of 105,000 with uniform values, and are looked at for 4 ms. TAMA "
    "counts as much as with uniform values, 5.0M.",
    "8": "As in figure 7 the plan begins with an attribute whose own bucket is full: counted at "
    "20,000, 6,600 candidates are left at M = 10, 7,300 at M = 22, with uniform values 2,100 and "
    "800. DEXIN is not flat from M = 6 on but falls, as with more attributes the candidates are "
    "found out sooner.",
    "9": "As in figure 7, and the more the wider the intervals: counted at 200,000 and θ = 0.9, "
    "the attribute the plan begins with has an estimated rate of 2.4 % and a real one of 86 %. At "
    "1M it excludes 94,000 and looks 4.0M times at 906,000 candidates, 26 ms; excluding by all ten "
    "attributes would take 3.6 ms.",
    "12": "DEXIN's plan takes an excluded entry and a look at a candidate to cost the same. "
    "Counted at ξ = 20 %: it excludes by one attribute, 723,000 entries in 0.8 ms, and looks 1.9M "
    "times at 277,000 candidates, of which 200,000 match, for 13 ns each: 25 ms. REIN marks 3.9M "
    "instead of 5.1M constraints, but writes 200,000 results instead of 1,000. OpIndex compares "
    "every bound whatever matches: 18M, 1.6 ns each.",
    "17": "Exclusive alone marks 3.9M constraints at ξ = 20 %, 5.1M at 0.1 %, which is the fall of "
    "the paper, but has 200,000 results to write instead of 1,000. DEXIN chooses to look at "
    "candidates, as its plan takes an entry and a look to cost the same: 1.1 and 13 ns here.",
    "13": "BE-Tree puts a subscription into one list, and OpIndex its bounds into lists that are "
    "in no order; DEXIN sorts its 20 bounds into buckets. Without sorting (linked lists) it is as "
    "fast as these two at 1M and twice as fast at 250,000.",
    "4": "From M = 10 on DEXIN is the fastest by far. With few attributes TAMA has little to "
    "count: at M = 2, counted at 20,000 subscriptions, 19,000 counters against the 15,400 entries "
    "that DEXIN excludes, at M = 22 202,000 against 19,200. BE-Tree does not grow: the more "
    "attributes divide the subscriptions, the fewer of them an event comes to. Counted at 20,000 "
    "over 40 events, it compares 13,100 subscriptions by 20,800 constraints at M = 2, 3,400 by "
    "7,600 at M = 10, 2,100 by 4,100 at M = 22.",
    "5": "From M = 10 on DEXIN deviates least and less with M, as in the paper. With few "
    "attributes much matches (45,000 ± 35,000 of 200,000 at M = 2), and its looks at candidates "
    "deviate by more than they are (16,000 ± 22,000), while TAMA only counts.",
    "11": "BE-Tree is ahead at 50 % points already, not only from 60 % on: it puts points into its "
    "smallest buckets and passes over the others, while DEXIN excludes nearly all by its first "
    "attribute whatever the share (counted at 20,000 and 50 %: 19,200 entries, 24 of its 46 µs).",
    "14": "DEXIN takes a twentieth more than REIN, too little to tell: both keep two entries of 12 "
    "bytes for a constraint, and DEXIN besides a byte for each bound. In the paper the difference "
    "are the nodes of red-black trees, which are sorted arrays here.",
    "15": "There is no gap that could close: the near-optimal plan costs what the optimal one does "
    "from M = 2 on.",
}

PRI_REIN = {
    "2": "Before the first subscription is determined 2.0 of 2.8 ms have passed, so sending "
    "between matching could save half of the other 0.9 ms at most, a tenth of the processing time; "
    "what it takes to change between the two 70 times is as much. Two threads of one Python share "
    "its interpreter: with the sender beside it, determining takes 4.2 instead of 2.6 ms. For "
    "Tamis, which determines from 0.3 ms on, alternate and concurrent are shorter than serial.",
    "4": "H-Tree indexes six of 50 attributes, of which 51 % of the subscriptions constrain none; "
    "these lie in one bucket here, and are determined when it has been read. The paper's buckets "
    "are filled more evenly, as it tells of a preparing time like Simple's.",
    "5": "REIN's gap is 0.045 ms and 0.30 ms a million: linear, but with a fixed part that is "
    "more than half of it at 100,000. Its result comes in parts of 8,192 subscriptions, 13 at "
    "100,000 and 122 at 1M (counted), 3 to 5 µs each, of which the words of the bit set are a "
    "tenth (4.5 and 43 µs in all, read alone); from the first part to the second it takes 20 to "
    "40 µs whatever the size, which is the fixed part. In the paper to read one bit takes 95 ns "
    "(47 ms for 500,000), so that nothing else shows. Siena gains more than REIN from arrays: at "
    "1M its gap is 9 ms for 7.3 s in the paper, 800 times less, REIN's 280 times; so the factor "
    "between them is smaller.",
    "7": "REIN looks at 64 bits as one word here, 0.18 ms for 500,000, and takes 9 ns for each one "
    "that matches: 190,000 more of them are 1.7 ms more. In the paper every bit takes 95 ns, so "
    "that 47 ms are there whatever matches. H-Tree does not explode, as a subscription that lies "
    "in many of the buckets an event visits is checked once here, and 51 % of them constrain none "
    "of the six indexed attributes and lie in one bucket.",
    "12": "Marking takes the same 2.0 ms. Then REIN looks at 64 bits of its set as one word, 0.36 "
    "ns a subscription with the parts it hands over (figure 5), which the order by priority does "
    "not allow: Pri-REIN asks for each subscription's bit, 1.7 ns. In the paper both ask bit by "
    "bit, 95 ns each, so that the order adds little.",
    "13": "The order by selectivity gains 1 % in this run, the paper's 3 % are no more than what "
    "two runs of one algorithm differ by here; a tenth at least is asked for to tell an order.",
    "14": "As in figure 12: REIN reads its bit set by words of 64, with its parts 0.22 ms, both "
    "others ask for one bit after the other, 0.82 and 0.83 ms, where the paper's REIN does so "
    "too.",
    "11": "The relation holds; that Pri-REIN is 14 % later on average is the reading of its bits "
    "one by one, 0.9 ms after 2.0 ms of marking, where REIN reads words of 64 bits in 0.2 ms. In "
    "the paper both read bit by bit.",
    "6": "A subscription has five constraints whatever M is. Simple reads the value of each by its "
    "number in the event, so that M plays no part; that the paper's searches the event for it is a "
    "guess. H-Tree takes longer with M, 10.8 and 15.0 ms in all, but not after its first part: at "
    "M = 100 73 % of the subscriptions (at M = 10 none) constrain none of the six attributes that "
    "are indexed, and lie in one bucket, which is read before anyone is determined.",
}

MO_TREE = {
    "4": "MO-Tree itself takes what it takes in the paper, 0.9 ms at 1M (0.96 there): it visits "
    "103,000 of a million buckets and compares 149,000 subscriptions there (counted over 60 "
    "events). It is the others that are faster here. TAMA adds to 1.33M counters of one byte at "
    "1M, 1.0 ns each, where the paper's takes 10.3 ms; at 1M they fit the processor's cache of "
    "1.3 MB, from 2M on they do not and take 1.8 ns each, so that the factor grows with the size, "
    "as in the paper. OpIndex compares 12M bounds a million, 1.5 ns each. R*-Tree is the same "
    "library as the paper's, and that it is packed at once changes nothing for events (0.26 and "
    "0.27 ms at 40,000, inserted one by one). Counted at 1M over 60 events: its leaves are "
    "divided by the place, 4 % by 9 % of the city on average, and hardly by anything else (90 % "
    "of the third attribute, all of the others); an event comes to 255 of 14,286 leaves and "
    "compares 17,800 boxes, 0.2 µs each, of which 119 are found and 53 match. At this rate the "
    "paper's 29 ms would be 140,000 boxes; that its places are harder to tell apart is a guess.",
    "5": "MO-Tree, TAMA and OpIndex go as in the paper: from K_s = 4 to 10 MO-Tree reads 225,000 "
    "and then 70,000 subscriptions, TAMA counts 0.73M and then 2.5M constraints, but 1.0 ns each. "
    "R*-Tree does not lose, as its leaves are divided by the place (counted for figure 4), which "
    "all subscriptions constrain whatever K_s is; that the paper's tree was divided by other "
    "sides is a guess.",
    "6": "MO-Tree itself takes no longer than in the paper, 0.6 ms at 1M (0.99 there): counted "
    "over 100 subscriptions at 1M it visits 3,600 buckets and reads 23,800 events, of which 34 "
    "match, as a ninth of the city to each side is far more than the 1 to 4 km of a square. "
    "BEQ-Tree touches 17 leaves with 7,400 events. The paper does not say how many events a leaf "
    "holds; with 65,535 instead of 1,024 BEQ-Tree would be 1.7 times slower (at 200,000). R*-Tree "
    "is packed at once here; inserted one by one, as the paper's, it is 10 times slower (2.2 and "
    "0.22 ms at 40,000 events).",
    "7": "The trends hold. At K_s = 10 MO-Tree visits 780 buckets and reads 6,100 events, BEQ-Tree "
    "touches 17 leaves with 7,600 events at 1,024 a leaf, so that both do as much. R*-Tree is "
    "packed at once here, which makes it 10 times faster than one by one (figure 6).",
    "8": "BEQ-Tree's time is that of its leaves: with 1,024 events it moves at most 1,024 numbers "
    "of two bytes for each of 20 attributes; measured at 200,000 events, an insertion takes 24 µs "
    "with leaves of 1,024, 450 µs with 65,535, which would be the paper's factor; it does not say "
    "how many they hold. Of R*-Tree, at 140 µs, the paper gives only the factor; 4,345 times "
    "MO-Tree's 0.3 µs would be 1.5 ms.",
    "9": "As in figure 8: a deletion from BEQ-Tree takes 19 µs with leaves of 1,024 events, 940 µs "
    "with 65,535 (at 200,000). MO-Tree finds an event in a bucket of 3 and takes 0.2 µs, less than "
    "the paper's, if its R*-Tree was no faster than this one.",
    "10": "Adding is appending to lists for all but R*-Tree: TAMA appends a subscription to 53 "
    "lists (counted), MO-Tree to one, but computes its bucket and the codes of all its bounds, 0.9 "
    "µs at least. In the paper TAMA takes 23 times as long; that its lists are allocated one by "
    "one is a guess. R*-Tree takes 170 µs here; 2,476 times MO-Tree's time would be 4 ms.",
    "11": "The order holds. To find a subscription TAMA goes through 53 lists and OpIndex through "
    "12, with two thirds as many entries as there are subscriptions (counted at 100,000), half of "
    "them on average; but as they lie side by side that takes 0.9 ns an entry. MO-Tree searches "
    "one bucket, which holds 480 subscriptions on average at 1M, as 60,000 of a million buckets "
    "hold all of them; the paper says few in each.",
    "table 5": "MO-Tree and OpIndex as in the paper in kind, TAMA is too fast for its factor: "
    "1.26M counters at 1.3 ns each at α = 0. MO-Tree takes as long at α = 0 as at 1: it reads "
    "270,000 subscriptions instead of 149,000, but visits 70,000 buckets instead of 103,000, as an "
    "event more often lacks one of the attributes that are indexed.",
    "table 5 subscriptions": "MO-Tree reads 52,500 events at α = 0 instead of 23,800 at 1, as in "
    "the paper it loses; BEQ-Tree's 17 leaves and 7,400 events are the same. BEQ-Tree is faster "
    "throughout as its leaves are small (figure 6), R*-Tree as it is packed at once.",
}

YANDEX = {
    "10": "What comes behind the descent is the same in one phase and in two: 0.39 and 0.38 ms at "
    "300,000. "
    "Counted at 37,500, a descent finds 65 conjunctions an event, of which 36 have a polygon, a "
    "distance, a NOT or an attribute outside the tree and are put to their tests by a kernel; "
    "Python is asked about none. What differs is the descent, 0.09 ms in one phase and 0.39 in "
    "two at 300,000: a path that is nobody else's is not drawn in our tree but compared beside "
    "the subscription, so that terms that nobody shares cost nothing in one phase either. An "
    "event visits 281 nodes and compares 95 subscriptions beside them; with three names in the "
    "tree 199 nodes and 3,749 subscriptions (counted at 37,500), and the second phase has nothing "
    "to save.",
}
