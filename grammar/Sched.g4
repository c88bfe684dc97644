// The schedule language. Line ends mean nothing; comments and the bodies of `table` are blanked before this is read
// (compiler/guards.cpp), so that one character here is one byte of the file.
// Two ambiguities are settled by looking ahead as far as needed: after an expression, `if c {` and the `if` of a clause
// against `if c else`; after an `op`, `on device e` against `on device e {`.
grammar Sched;

file : header? declaration* EOF ;
// One `--cost` argument, one `NAME=VALUE` argument.
costs : valueLine (',' valueLine)* EOF ;
value : expression EOF ;

header : 'schedule' Name ('(' (parameter (',' parameter)*)? ')')? ;
parameter : Name '=' expression ;

declaration
  : 'use' (Name | String)                                                       # Use
  | setting=('devices' | 'stages' | 'microbatches' | 'slices') expression       # Setting
  | letDeclaration                                                              # Let
  | 'place' 'stage' Name ('of' 'microbatch' Name)? 'on' 'device' expression     # Place
  | 'route' 'microbatch' Name '=' expression                                    # Route
  | 'op' Name '(' (opIndex (',' opIndex)*)? ')' ('=' opName ('+' opName)*)? opClause*  # Op
  | opName need+                                                                # AddedNeed
  | 'on' 'device' (Name ('in' expression)? | expression) '{' item* '}'          # OnDevice
  | what=('cost' | 'memory' | 'freeze') valueLine (',' valueLine)*              # Values
  | 'require' expression String?                                                # Require
  | 'expect' expression expectClause*                                           # Expect
  | 'table' '{' '}'                                                             # Table
  ;

letDeclaration : 'let' Name (open='(' (Name (',' Name)*)? ')')? '=' expression ;
expectClause : 'if' expression | 'for' Name 'in' expression ;

opIndex : Name 'in' expression ;
opClause : 'optional' | 'on' 'stream' Name | 'on' 'device' expression | 'if' expression | need ;
need : 'receives' Name 'from' opName | 'after' opName (',' opName)* ;

valueLine : target ('=' | '<=') expression ;
target : opOrName (('with' | 'after') opOrName)? ;
opOrName : Name | opName ;

item : statement | kind=('any' | 'fill') body | 'limit' (Name | 'memory') '<=' expression ;
body : '{' statement* '}' ;
statement
  : opName ('with' opName)? ('at' expression)?                                  # OpStatement
  | 'repeat' expression body                                                    # RepeatStatement
  | 'for' Name 'in' expression body                                             # ForStatement
  | 'if' expression body ('else' 'if' expression body)* ('else' body)?          # IfStatement
  | letDeclaration                                                              # LetStatement
  ;

opName : Name '(' arguments? ')' ;
arguments : argument (',' argument)* ;
argument : star='*' | 'next' | each | 'memory' ;
each : expression ('for' Name 'in' expression)? ;

expression : term ('if' term 'else' expression)? ;
term
  : term '[' expression ']'                                                     # Element
  | ('-' | '+' ) term                                                           # Sign
  | term op=('*' | '/' | 'div' | 'mod') term                                    # Binary
  | term op=('+' | '-') term                                                    # Binary
  | term '..' term                                                              # Range
  | term op=('==' | '!=' | '<' | '<=' | '>' | '>=') term                        # Binary
  | 'not' term                                                                  # Not
  | term op='and' term                                                          # Binary
  | term op='or' term                                                           # Binary
  | Number                                                                      # Number
  | name                                                                        # NameTerm
  | name '(' arguments? ')'                                                     # Call
  | '[' (each (',' each)*)? ']'                                                 # List
  | '(' expression ')'                                                          # Parentheses
  | '(' opOrName 'with' opOrName ')'                                            # With
  ;
name : Name | 'devices' | 'stages' | 'microbatches' | 'slices' | 'device' ;

Schedule : 'schedule' ;
Use : 'use' ;
Require : 'require' ;
Let : 'let' ;
Devices : 'devices' ;
Stages : 'stages' ;
Microbatches : 'microbatches' ;
Slices : 'slices' ;
Device : 'device' ;
Stage : 'stage' ;
Microbatch : 'microbatch' ;
Place : 'place' ;
Of : 'of' ;
Route : 'route' ;
Op : 'op' ;
On : 'on' ;
Stream : 'stream' ;
Receives : 'receives' ;
From : 'from' ;
After : 'after' ;
Optional : 'optional' ;
Any : 'any' ;
Fill : 'fill' ;
Limit : 'limit' ;
Repeat : 'repeat' ;
For : 'for' ;
In : 'in' ;
If : 'if' ;
Else : 'else' ;
With : 'with' ;
At : 'at' ;
Next : 'next' ;
Table : 'table' ;
Cost : 'cost' ;
Memory : 'memory' ;
Freeze : 'freeze' ;
Expect : 'expect' ;
And : 'and' ;
Or : 'or' ;
Not : 'not' ;
Div : 'div' ;
Mod : 'mod' ;

Assign : '=' ;
AtMost : '<=' ;
Star : '*' ;
Open : '(' ;

Number : [0-9]+ ('.' [0-9]+)? ;
Name : [A-Za-z_] [A-Za-z_0-9]* ;
String : '"' ~["\n]* '"' ;
Space : [ \t\r\n]+ -> skip ;
// Anything else reaches the parser, which says what it thinks of it.
Unknown : . ;
