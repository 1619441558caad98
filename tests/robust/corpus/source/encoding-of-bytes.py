# coding: hex
