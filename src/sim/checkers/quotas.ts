// Rule `quota`: at every commit the usage of each quota equals the sum over its objects, and no charge exceeds a limit.
import { decodeStored } from '../../apiserver/index.ts'
import type { StoreWrite } from '../engine/follow-store.ts'
import { NAMESPACES } from '../plan/catalog.ts'
import type { CheckContext } from './context.ts'
import { createQuotaSums } from './quota-sums.ts'

export function checkQuotas({ view, report }: CheckContext): void {
  const sumsByNamespace = NAMESPACES.map((namespace) => ({
    namespace,
    sums: createQuotaSums(namespace, (text) => report('quota', `in ${namespace} ${text}`)),
  }))
  view.onWrites((writes) => {
    for (const { namespace, sums } of sumsByNamespace) {
      const changes = writes.filter(({ key }) => mayBeCounted(key, namespace)).map(decodeChange)
      if (changes.length > 0) sums.apply(changes)
    }
  })
}

/** No quota counts events. */
const mayBeCounted = (key: string, namespace: string): boolean =>
  key.includes(`/${namespace}/`) && !key.startsWith('core/events/')

const decodeChange = ({ key, value, revision }: StoreWrite) => ({
  key,
  object: value && decodeStored({ value, modRevision: revision }),
})
