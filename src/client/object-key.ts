// Converts between objects, references and the keys that caches and work queues use within a kind.
//   shop/orders   a namespaced object      pv-7   a cluster-scoped object
import type { KubeObject } from '../api/kind.ts'
import type { ObjectRef } from './client.ts'

export type ObjectKey = string

export const keyOfRef = ({ namespace, name }: ObjectRef): ObjectKey => (namespace ? `${namespace}/${name}` : name)

export const keyOfObject = ({ metadata: { namespace, name = '' } }: Readonly<KubeObject>): ObjectKey =>
  namespace ? `${namespace}/${name}` : name

export function refOfKey(key: ObjectKey): ObjectRef {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
