// Declares Service, Endpoints and EndpointSlice. The server has only its own objects, default/kubernetes, and clients can only
// read them: programs in pods and kube-controller-manager expect them.
import { defineForeignKind } from '../../foreign-kind.ts'
import {
  type EndpointSlice,
  type Endpoints,
  endpointSliceFields,
  endpointsFields,
  type Service,
  serviceFields,
} from './kubernetes-service-schema.ts'

const DOC = 'This server has only one object of this kind, default/kubernetes.'

/** Listed in discovery, because `kubectl cluster-info` fails without it. */
export const serviceKind = defineForeignKind<Service>({
  group: '',
  versions: ['v1'],
  kind: 'Service',
  plural: 'services',
  namespaced: true,
  doc: DOC,
  shortNames: ['svc'],
  categories: ['all'],
  isDiscoverable: true,
  fields: serviceFields,
})

export const endpointsKind = defineForeignKind<Endpoints>({
  group: '',
  versions: ['v1'],
  kind: 'Endpoints',
  plural: 'endpoints',
  namespaced: true,
  doc: DOC,
  shortNames: ['ep'],
  isDiscoverable: true,
  fields: endpointsFields,
})

export const endpointSliceKind = defineForeignKind<EndpointSlice>({
  group: 'discovery.k8s.io',
  versions: ['v1'],
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
  doc: DOC,
  isDiscoverable: true,
  fields: endpointSliceFields,
})
