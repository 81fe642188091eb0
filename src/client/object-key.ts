// The name of an object within its kind, as one string: caches and work queues are keyed by it.
//   shop/orders   an object in a namespace      pv-7   one of the whole cluster
import type { KubeObject } from '../api/kind.ts'
import type { ObjectRef } from './client.ts'

export type ObjectKey = string

export const keyOfRef = ({ namespace, name }: ObjectRef): ObjectKey => (namespace ? `${namespace}/${name}` : name)

export const keyOfObject = ({ metadata: { namespace, name = '' } }: Readonly<KubeObject>): ObjectKey =>
  namespace ? `${namespace}/${name}` : name

export function refOfKey(key: ObjectKey): ObjectRef {
  const at = key.indexOf('/')
  return at < 0 ? { name: key } : { namespace: key.slice(0, at), name: key.slice(at + 1) }
}
