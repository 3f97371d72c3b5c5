"""Transcripts of GTP sessions: a command, and after ``|`` the expected response.

``...`` at the end of a response matches any continuation. The first line of a
transcript says what it shows, with the game in brackets if it is not go/5.
"""

import re

import pytest

DIALOGUES = """
komi that is none, or infinite, or too much
komi 6.25                               | ? unacceptable komi
komi                                    | ? syntax error
komi nan                                | ? syntax error
komi 362                                | ? unacceptable komi
komi 1_0                                | ? syntax error
komi \uff15                                  | ? syntax error
komi 0x5                                | ? syntax error
komi 5,5                                | ? syntax error
komi five                               | ? syntax error
get_komi                                | = 7.5

komi has no minus zero
komi -0                                 | =
get_komi                                | = 0
komi -0.0                               | =
get_komi                                | = 0
komi -0e5                               | =
get_komi                                | = 0
showboard                               | = go/5/komi=0,...

boards of one size
play b A1                               | =
boardsize 5                             | =
boardsize 19                            | ? unacceptable size
boardsize x                             | ? syntax error
rectangular_boardsize 5 5               | =
rectangular_boardsize 5 6               | ? unacceptable size
boardsize 5 5                           | =
boardsize 5 6                           | ? unacceptable size
final_score                             | = W+7.5

rectangles [go/5x7]
rectangular_boardsize 7 5               | =
boardsize 7 5                           | =
boardsize 5                             | ? unacceptable size

moves and undo
play black C3                           | =
play W c3                               | ? illegal move
play b C9                               | ? invalid coordinate
play x C3                               | ? invalid color
play b                                  | ? syntax error
play w D3                               | =
undo                                    | =
undo                                    | =
undo                                    | ? cannot undo
final_score                             | = W+7.5
play b C3                               | =
final_score                             | = B+17.5

scores are the rules'
gogui-play_sequence b C3 w B2 b D4 w E1 | =
final_score                             | = W+7.5

superko: Black takes at B2, and White may not take back at once
gogui-play_sequence b B3 w C3 b A2 w D2 | =
gogui-play_sequence b B1 w C1 w B2 b C2 | =
play w B2                               | ? illegal move

the end of a game
gogui-play_sequence b C3 w pass b pass  | =
genmove w                               | = pass
final_score                             | = B+17.5
play w A1                               | =
showboard                               | = go/5, Black (X) to play...

points, stones and territory
gogui-play_sequence b B1 w D1 b B2 w D2 | =
gogui-play_sequence b B3 w D3 b B4 w D4 | =
gogui-play_sequence b B5 w D5           | =
final_score                             | = W+7.5
final_status_list alive                 | = B5 B4 B3 B2 B1\\nD5 D4 D3 D2 D1
final_status_list dead                  | =
final_status_list seki                  | =
final_status_list black_territory       | = A5 A4 A3 A2 A1
final_status_list dame                  | = C5 C4 C3 C2 C1
final_status_list lost                  | ? syntax error
final_status_list                       | ? syntax error
showboard                               | = go/5, Black (X) to play\\n5 . X .(O)...

several moves in a line: all or none
gogui-play_sequence B C3 W D2 B D3      | =
undo                                    | =
gogui-play_sequence B A1 W C3 B A2      | ? illegal move
gogui-play_sequence B                   | ? syntax error
gogui-play_sequence B D3                | =

fixed handicap [go/9]
fixed_handicap 1                        | ? invalid number of stones
fixed_handicap 10                       | ? invalid number of stones
fixed_handicap x                        | ? syntax error
place_free_handicap 1                   | ? invalid number of stones
fixed_handicap 4                        | = C3 G7 C7 G3
showboard                               | = go/9/handicap=4, White (O) to play...
fixed_handicap 2                        | ? board not empty
clear_board                             | =
place_free_handicap 20                  | = C3 G7 C7 G3 C5 G5 E3 E7 E5

fixed handicap of larger boards [go/19]
fixed_handicap 9                        | = D4 Q16 D16 Q4 D10 Q10 K4 K16 K10

fixed handicap with a stone in the middle [go/13]
fixed_handicap 5                        | = D4 K10 D10 K4 G7

a board without points for handicap
place_free_handicap 2                   | ? invalid number of stones
fixed_handicap 2                        | ? invalid number of stones
set_free_handicap A1                    | ? bad vertex list
set_free_handicap A1 A1                 | ? bad vertex list
set_free_handicap A1 pass               | ? bad vertex list
set_free_handicap A1 Z9                 | ? bad vertex list
set_free_handicap                       | ? bad vertex list

rules
kata-set-rules tromp-taylor             | =
kata-set-rules koPOSITIONALscoreAREAtaxNONEsui1 | =
kata-set-rules {"ko":"POSITIONAL","suicide":true,"scoring":"AREA"} | =
kata-set-rules chinese                  | ? unsupported rules;...
kata-set-rules japanese                 | ? unsupported rules;...
kata-set-rules {}                       | ? unsupported rules;...
kata-set-rules {                        | ? unsupported rules;...
kata-set-rules {"ko": "SIMPLE"}         | ? unsupported rules;...
kata-set-rules {"ko":"POSITIONAL","suicide":true,"scoring":"TERRITORY"} | ? unsup...
kata-set-rules {"ko":"POSITIONAL","suicide":true,"hasButton":true} | ? unsupported...
kata-set-rules {"ko":"POSITIONAL","suicide":true,"x":1} | ? unsupported...
kata-set-rules                          | ? syntax error

Chinese rules [go/5/simple/nosuicide]
kata-set-rules chinese                  | =
kata-set-rules tromp-taylor             | ? unsupported rules;...

rules by which a move was illegal: two stones took their own last liberty [several]
gogui-play_sequence b A1 w A3 w B2 w C1 b B1 b E5 | =
kata-set-rules chinese                  | =
kata-set-rules tromp-taylor             | =
gogui-play_sequence b A2 w A1           | =
kata-set-rules chinese                  | ? a move of this game is illegal...
showboard                               | = go/5, ...

time settings
time_settings 600 30                    | ? syntax error
time_settings x 30 5                    | ? syntax error
time_left w 30                          | ? syntax error
time_left q 30 0                        | ? invalid color
kgs-time_settings absolute              | ? syntax error
kgs-time_settings fischer 1 2           | ? unknown time system; known are none abs...
kata-time_settings                      | ? unknown time system; known are none abs...
kata-time_settings byo-yomi 1 2 3       | ? unknown time system...
kata-time_settings fischer 1            | ? syntax error
kata-time_settings fischer 1 x          | ? syntax error
kata-time_settings fischer-capped 1 2 3 | ? syntax error
kata-time_settings fischer-capped 9 2 3 4 | ? the main time must not be...
kata-time_settings byoyomi 1 2 nan      | ? syntax error
kata-time_settings absolute nan         | ? syntax error

what it says of itself
3 name                                  | =3 tengen
protocol_version                        | = 2
known_command genmove                   | = true
known_command foo                       | = false
known_command                           | = false
foo                                     | ? unknown command
5                                       | ?5 unknown command
kata-get-param analysisWideRootNoise    | ? unknown command
1 quit                                  | =1

a search needs a move
play b A1                               | =
1 lz-analyze w allow w A1 1             | ?1 no move is allowed
2 kata-genmove_analyze w allow w A1 1   | ?2 no move is allowed
kata-genmove_analyze                    | ? syntax error
kata-raw-nn 8                           | ? syntax error
kata-raw-nn b x                         | ? syntax error

a draw by repetition is no position to analyse [go/2/simple]
gogui-play_sequence b A2 w B2 b A1 w B1 b A2 w A1 b A2 | =
kata-analyze                            | =
kata-raw-nn                             | ? the game is over
"""


def is_answer(answer, wanted):
    if wanted.endswith("..."):
        return answer.startswith(wanted[:-3])
    return answer == wanted


@pytest.mark.parametrize(
    "dialogue",
    DIALOGUES.strip().split("\n\n"),
    ids=lambda dialogue: dialogue.partition("\n")[0],
)
def test_a_dialogue(ask, dialogue):
    title, *lines = dialogue.split("\n")
    task = re.search(r"\[(.*)\]$", title)
    settings = {} if task is None else {"task": task[1]}
    if settings.get("task") == "several":
        settings = {"mixed_sizes": True}
    pairs = [re.split(r" +\| ", line) for line in lines]
    answers = ask(*(said for said, _ in pairs), **settings)
    assert len(answers) == len(pairs)
    for (said, wanted), answer in zip(pairs, answers, strict=True):
        assert is_answer(answer, wanted.replace("\\n", "\n")), (said, answer)
