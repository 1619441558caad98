# coding: rot13
