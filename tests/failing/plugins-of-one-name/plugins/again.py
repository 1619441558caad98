from precast.passes import BuiltinPass

again = BuiltinPass("common.cse", alias="look")
