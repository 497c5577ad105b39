module semel/clients/go

go 1.24
