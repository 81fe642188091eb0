// Records the requests of the clients, and closes their connections on request.
package main

import (
	"context"
	"net"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

type wire struct {
	mu          sync.Mutex
	requests    []sentRequest
	connections map[net.Conn]bool
}

type sentRequest struct {
	method, path, query, contentType string
}

// newWire records the requests and connections of all clients of this config.
func newWire(config *rest.Config) *wire {
	w := &wire{connections: map[net.Conn]bool{}}
	config.Dial = w.dial
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &recorder{wire: w, next: next} })
	return w
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		w.mu.Lock()
		w.connections[connection] = true
		w.mu.Unlock()
	}
	return connection, err
}

// cut closes every connection, including those with requests in progress.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for connection := range w.connections {
		connection.Close()
		delete(w.connections, connection)
	}
}

// since returns the requests after the first n.
func (w *wire) since(n int) []sentRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sentRequest{}, w.requests[n:]...)
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

type recorder struct {
	wire *wire
	next http.RoundTripper
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.wire.mu.Lock()
	r.wire.requests = append(r.wire.requests, sentRequest{
		method:      request.Method,
		path:        request.URL.Path,
		query:       request.URL.RawQuery,
		contentType: request.Header.Get("Content-Type"),
	})
	r.wire.mu.Unlock()
	return r.next.RoundTrip(request)
}
