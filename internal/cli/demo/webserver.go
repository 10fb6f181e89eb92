package demo

import (
	"fmt"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/webserver"
)

var webservers = webserver.Operator.Parent

const (
	webserverName    = "webserver-sample"
	webserverService = "webserver-sample-service"
	webserverFile    = "_v1_webserver.yaml"
	webserverSample  = `apiVersion: my.domain/v1
kind: WebServer
metadata:
  name: webserver-sample
spec:
  image: nginx:1.23.1
  replicas: 3
  service:
    nodePort: 30010
`
	secondName   = "webserver-second"
	secondSample = `apiVersion: my.domain/v1
kind: WebServer
metadata:
  name: webserver-second
spec:
  image: nginx:1.22.0
  replicas: 2
`
	firstImage, nextImage, handImage = "nginx:1.23.1", "nginx:1.25.0", "nginx:1.19.0"
)

// WebServer is the story of the WebServer operator.
func WebServer() Story {
	return Story{
		Name:      "webserver",
		Title:     "WebServer: a Deployment and a Service, and two WebServers that do not meet",
		Operators: []*operator.Operator{webserver.Operator},
		Watch:     []operator.Kind{webservers, deployments, replicaSets, services, pods},
		Files:     map[string]string{webserverFile: webserverSample},
		Steps:     append(webserverSteps(), webserverDeletions()...),
		Encore:    []Command{Kubectl("apply", "-f", webserverFile)},
	}
}

// webserverSteps are those in which something is made or changed.
func webserverSteps() []Step {
	const three, four = int64(3), int64(4)
	return []Step{
		{
			Name:   "sample applied: 3 of 3 ready",
			Run:    Kubectl("apply", "-f", webserverFile),
			Begins: field(webservers, webserverName, three, "spec", "replicas"),
			Heals:  all(asks(webserverName, three, firstImage), serves(30010)), Settles: served(webserverName, three, firstImage),
			Show: []Command{Kubectl("get", "webserver,deployment,service")},
		},
		{
			Name:   "scaled to 4",
			Run:    Kubectl("scale", "webserver", webserverName, "--replicas", "4"),
			Begins: field(webservers, webserverName, four, "spec", "replicas"),
			Heals:  asks(webserverName, four, firstImage), Settles: served(webserverName, four, firstImage),
			Show: []Command{Kubectl("get", "webserver", webserverName)},
		},
		{
			Name:   "image changed: rolled out",
			Note:   "a pod counts two seconds after it is ready, and an old one goes only then",
			Run:    Kubectl("patch", "webserver", webserverName, "-p", `{"spec":{"image": "`+nextImage+`"}}`, "--type", "merge"),
			Begins: field(webservers, webserverName, any(nextImage), "spec", "image"),
			Heals:  asks(webserverName, four, nextImage), Settles: served(webserverName, four, nextImage),
			Show: []Command{Kubectl("get", "webserver", webserverName, "-o", "wide")},
		},
		{
			Name:   "Deployment edited by hand: healed",
			Run:    Kubectl("set", "image", "deployment/"+webserverName, "webserver="+handImage),
			Begins: asks(webserverName, four, handImage),
			Heals:  asks(webserverName, four, nextImage), Settles: served(webserverName, four, nextImage),
			Show: []Command{Kubectl("get", "deployment", webserverName, "-o", "wide")},
		},
		{
			Name:   "port of the Service edited by hand: healed",
			Run:    Kubectl("patch", "service", webserverService, "--type", "json", "-p", `[{"op": "replace", "path": "/spec/ports/0/port", "value": 8080}]`),
			Begins: ports(8080, 30010), Heals: serves(30010), Settles: serves(30010),
			Show: []Command{Kubectl("get", "service", webserverService)},
		},
		{
			Name:   "a second WebServer beside it",
			Run:    Command{Args: []string{"apply", "-f", "-"}, Stdin: secondSample},
			Begins: field(webservers, secondName, int64(2), "spec", "replicas"),
			Heals:  asks(secondName, 2, "nginx:1.22.0"), Settles: all(served(secondName, 2, "nginx:1.22.0"), served(webserverName, four, nextImage), apart),
			Show: []Command{Kubectl("get", "webserver"), Kubectl("get", "pod", "-L", "webserver_cr"), Kubectl("get", "service", "-o", "wide")},
		},
	}
}

// webserverDeletions come late: the garbage collector has learnt the kind by then.
func webserverDeletions() []Step {
	return []Step{
		{
			Name:   "Service deleted: recreated, same node port",
			Run:    Kubectl("delete", "service", webserverService),
			Begins: absent(services, webserverService), Heals: serves(30010), Settles: serves(30010),
			Show: []Command{Kubectl("get", "service", webserverService)},
		},
		{
			Name:   "the second deleted: the first is untouched",
			Note:   collectorNote,
			Run:    Kubectl("delete", "webserver", secondName),
			Begins: absent(webservers, secondName),
			Settles: all(absent(deployments, secondName), absent(services, secondName+"-service"),
				podsOf(secondName, 0), served(webserverName, 4, nextImage), serves(30010)),
			Show: []Command{Kubectl("get", "webserver,deployment,service,pod")},
		},
		{
			Name:   "WebServer deleted: everything gone",
			Run:    Kubectl("delete", "webserver", webserverName),
			Begins: absent(webservers, webserverName), Settles: gone(deployments, replicaSets, services, pods),
			Show: []Command{Kubectl("get", "webserver,deployment,replicaset,service,pod")},
		},
	}
}

// asks holds when the WebServer's Deployment asks for n pods of the image.
func asks(name string, n int64, image string) Condition {
	return all(field(deployments, name, n, "spec", "replicas"), func(w World) (bool, string) {
		var images []any
		for _, c := range w.at(deployments, name).list("spec", "template", "spec", "containers") {
			images = append(images, c.get("image"))
		}
		return len(images) == 1 && images[0] == image, fmt.Sprintf("Deployment %s has the images %v, not %s", name, images, image)
	})
}

// served holds when n pods of the image, and no other, serve a WebServer, and
// its status says so.
func served(name string, n int64, image string) Condition {
	status := func(want any, path string) Condition { return field(webservers, name, want, "status", path) }
	return all(asks(name, n, image), podsOf(name, int(n)), isReady(name),
		status(n, "replicas"), status(n, "readyReplicas"), status(n, "updatedReplicas"), status(image, "image"))
}

// isReady holds when a WebServer's condition Ready is True.
func isReady(name string) Condition {
	return func(w World) (bool, string) {
		conditions := w.at(webservers, name).list("status", "conditions")
		for _, c := range conditions {
			if c.get("type") == "Ready" {
				return c.get("status") == "True", fmt.Sprintf("WebServer %s is not ready: %v", name, c.get("message"))
			}
		}
		return false, fmt.Sprintf("WebServer %s does not say whether it is ready", name)
	}
}

// podsOf holds when n pods are there for a WebServer.
func podsOf(name string, n int) Condition {
	return func(w World) (bool, string) {
		count := 0
		for _, pod := range w[pods.GroupVersionKind] {
			if pod.get("metadata", "labels", "webserver_cr") == name {
				count++
			}
		}
		return count == n, fmt.Sprintf("%s has %d pods, not %d", name, count, n)
	}
}

// serves holds when the sample's Service is as the WebServer says: port 80 and
// nothing else, on that port of the nodes.
func serves(nodePort int64) Condition { return ports(80, nodePort) }

// ports holds when the sample's Service has exactly this port.
func ports(port, nodePort int64) Condition {
	return func(w World) (bool, string) {
		list := w.at(services, webserverService).list("spec", "ports")
		return len(list) == 1 && list[0].number("port") == port && list[0].number("nodePort") == nodePort,
			fmt.Sprintf("the ports of Service %s are %v; %d on node port %d is wanted", webserverService, list, port, nodePort)
	}
}

// apart holds when the two Services lead to the pods of their own WebServer, by
// node ports of their own.
func apart(w World) (bool, string) {
	first, second := w.at(services, webserverService), w.at(services, secondName+"-service")
	selects := func(o Object, name string) bool { return o.get("spec", "selector", "webserver_cr") == name }
	one, two := first.list("spec", "ports"), second.list("spec", "ports")
	return selects(first, webserverName) && selects(second, secondName) &&
			len(one) == 1 && len(two) == 1 && two[0].number("nodePort") > 0 && one[0].number("nodePort") != two[0].number("nodePort"),
		fmt.Sprintf("the Services are %v and %v", first.get("spec"), second.get("spec"))
}
