// Command memcached is an operator as an author writes it, at its smallest: a
// Memcached of size n becomes a Deployment of n servers. It never touches what
// it did not make; its invariant is the size.
package main

import "github.com/homeostat-dev/homeostat"

func main() { homeostat.Main(Operator) }
