// Creates the manifests for the question "what would fit": pods that each use one new claim of a class and size, and request
// nothing else.
import { isQuantity, quantitySign } from '../../../api/quantity.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { SimulateRequest } from '../../../console/index.ts'

type ClaimsRequest = Extract<SimulateRequest, { readonly className: string }>

const COUNT_MAX = 1_000

/** Throws UsageError if the request is invalid. */
export function manifestsForClaims({ className, size, count }: ClaimsRequest, namespace: string): string {
  if (typeof className !== 'string' || className === '') throw new UsageError('className is missing')
  if (typeof size !== 'string' || !isQuantity(size) || quantitySign(size) <= 0)
    throw new UsageError(`size ${JSON.stringify(size)}: expected a size above 0, such as 10Gi`)
  if (!Number.isInteger(count) || count < 1 || count > COUNT_MAX)
    throw new UsageError(`count ${JSON.stringify(count)}: expected a whole number from 1 to ${COUNT_MAX}`)
  const items = Array.from({ length: count }, (_, index) => {
    const metadata = { namespace, name: `would-fit-${index + 1}` }
    return [claimOf(metadata, className, size), podOf(metadata)]
  })
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: items.flat() })
}

interface Metadata {
  readonly namespace: string
  readonly name: string
}

const claimOf = (metadata: Metadata, storageClassName: string, storage: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata,
  spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage } } },
})

const podOf = (metadata: Metadata) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
  spec: {
    containers: [{ name: 'main', image: 'none' }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: metadata.name } }],
  },
})
