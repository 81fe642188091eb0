// Rule `quota`: at every commit the usage of each quota equals the sum over its objects, and no charge exceeds a limit.
import { decodeStored } from '../../apiserver/index.ts'
import { NAMESPACES } from '../plan/catalog.ts'
import type { CheckContext } from './context.ts'
import { createQuotaSums } from './quota-sums.ts'

export function checkQuotas({ view, report }: CheckContext): void {
  const checkers = NAMESPACES.map((namespace) => ({
    mark: `/${namespace}/`,
    checker: createQuotaSums(namespace, (text) => report('quota', `in ${namespace} ${text}`)),
  }))
  view.onWrites((writes) => {
    for (const { mark, checker } of checkers) {
      const ours = writes.filter(({ key }) => key.includes(mark) && !key.startsWith('core/events/'))
      if (ours.length === 0) continue
      checker.take(
        ours.map(({ key, value, revision }) => ({
          key,
          object: value && decodeStored({ value, modRevision: revision }),
        })),
      )
    }
  })
}
