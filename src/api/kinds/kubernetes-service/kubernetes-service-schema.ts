// The schemas of Service, Endpoints and EndpointSlice, limited to the fields that the Service `kubernetes` and the
// manifests of other Services use.
import { boolean, type Infer, int32, intOrString, list, map, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { objectReference } from '../shared/references-schema.ts'

const CORE = 'io.k8s.api.core.v1'
const DISCOVERY = 'io.k8s.api.discovery.v1'

const servicePort = object(`${CORE}.ServicePort`, 'A port of a Service.', {
  name: opt(1, string, 'Name of the port.'),
  protocol: opt(2, string, 'TCP, UDP or SCTP.'),
  appProtocol: ptr(6, string, 'Protocol of the application.'),
  port: req(3, int32, 'The port.'),
  targetPort: opt(4, intOrString, 'Port of the endpoints.'),
  nodePort: opt(5, int32, 'Port on each node.'),
})

const serviceSpec = object(`${CORE}.ServiceSpec`, 'How clients reach the endpoints of a Service.', {
  ports: opt(1, list(servicePort), 'Ports of the Service.'),
  selector: opt(2, map(string), 'Labels of the pods behind the Service.'),
  clusterIP: opt(3, string, 'Virtual address of the Service, or None.'),
  clusterIPs: opt(18, list(string), 'Virtual addresses of the Service.'),
  type: opt(4, string, 'ClusterIP, NodePort, LoadBalancer or ExternalName.'),
  externalIPs: opt(5, list(string), 'Further addresses of the Service.'),
  sessionAffinity: opt(7, string, 'Whether requests of one client reach the same endpoint.'),
  loadBalancerIP: opt(8, string, 'Address of the load balancer.'),
  loadBalancerSourceRanges: opt(9, list(string), 'Addresses of clients of the load balancer.'),
  externalName: opt(10, string, 'DNS name that the Service stands for.'),
  externalTrafficPolicy: opt(11, string, 'How nodes route external traffic.'),
  healthCheckNodePort: opt(12, int32, 'Port of the health check on each node.'),
  publishNotReadyAddresses: opt(13, boolean, 'Whether endpoints are published before they are ready.'),
  ipFamilyPolicy: ptr(17, string, 'SingleStack, PreferDualStack or RequireDualStack.'),
  ipFamilies: opt(19, list(string), 'IPv4, IPv6 or both.'),
  allocateLoadBalancerNodePorts: ptr(20, boolean, 'Whether a load balancer needs node ports.'),
  loadBalancerClass: ptr(21, string, 'Class of the load balancer.'),
  internalTrafficPolicy: ptr(22, string, 'How nodes route internal traffic.'),
  trafficDistribution: ptr(23, string, 'Preferred endpoints of a client.'),
})

const loadBalancerStatus = object(`${CORE}.LoadBalancerStatus`, 'Always empty.', {})
const serviceStatus = object(`${CORE}.ServiceStatus`, 'State of a Service.', {
  loadBalancer: opt(1, loadBalancerStatus, 'State of the load balancer.'),
})

export const serviceFields = {
  spec: opt(2, serviceSpec, 'How clients reach the endpoints.'),
  status: opt(3, serviceStatus, 'State of the Service.'),
}

const endpointAddress = object(`${CORE}.EndpointAddress`, 'An address of an endpoint.', {
  ip: req(1, string, 'IP address.'),
  targetRef: ptr(2, objectReference, 'Object behind the address.'),
  hostname: opt(3, string, 'Name of the endpoint.'),
  nodeName: ptr(4, string, 'Node of the endpoint.'),
})

const corePort = object(`${CORE}.EndpointPort`, 'A port of the endpoints.', {
  name: opt(1, string, 'Name of the port.'),
  port: req(2, int32, 'The port.'),
  protocol: opt(3, string, 'TCP, UDP or SCTP.'),
  appProtocol: ptr(4, string, 'Protocol of the application.'),
})

const endpointSubset = object(`${CORE}.EndpointSubset`, 'Endpoints with the same ports.', {
  addresses: opt(1, list(endpointAddress), 'Addresses of endpoints that are ready.'),
  notReadyAddresses: opt(2, list(endpointAddress), 'Addresses of endpoints that are not ready.'),
  ports: opt(3, list(corePort), 'Ports of all addresses.'),
})

export const endpointsFields = { subsets: opt(2, list(endpointSubset), 'Groups of endpoints.') }

const endpointConditions = object(`${DISCOVERY}.EndpointConditions`, 'State of an endpoint.', {
  ready: ptr(1, boolean, 'Whether the endpoint accepts requests.'),
  serving: ptr(2, boolean, 'Whether the endpoint answers requests.'),
  terminating: ptr(3, boolean, 'Whether the endpoint is stopping.'),
})

const endpoint = object(`${DISCOVERY}.Endpoint`, 'An endpoint.', {
  addresses: req(1, list(string), 'Addresses of the endpoint.'),
  conditions: opt(2, endpointConditions, 'State of the endpoint.'),
  hostname: ptr(3, string, 'Name of the endpoint.'),
  targetRef: ptr(4, objectReference, 'Object behind the endpoint.'),
  nodeName: ptr(6, string, 'Node of the endpoint.'),
  zone: ptr(7, string, 'Zone of the endpoint.'),
})

const discoveryPort = object(`${DISCOVERY}.EndpointPort`, 'A port of the endpoints.', {
  name: ptr(1, string, 'Name of the port.'),
  protocol: ptr(2, string, 'TCP, UDP or SCTP.'),
  port: ptr(3, int32, 'The port.'),
  appProtocol: ptr(4, string, 'Protocol of the application.'),
})

export const endpointSliceFields = {
  endpoints: req(2, list(endpoint), 'The endpoints.'),
  ports: opt(3, list(discoveryPort), 'Ports of all endpoints.'),
  addressType: req(4, string, 'IPv4, IPv6 or FQDN.'),
}

const withMeta = <const F extends object>(fields: F) => ({
  metadata: req(1, objectMeta, 'Standard metadata.'),
  ...fields,
})
const serviceType = object('', '', withMeta(serviceFields))
const endpointsType = object('', '', withMeta(endpointsFields))
const endpointSliceType = object('', '', withMeta(endpointSliceFields))
export type Service = Infer<typeof serviceType>
export type Endpoints = Infer<typeof endpointsType>
export type EndpointSlice = Infer<typeof endpointSliceType>
