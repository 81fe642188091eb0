// What quotas say is what the objects add up to, at every commit, and no charge takes one above its bounds.
import { decodeStored } from '../../../apiserver/index.ts'
import { createQuotaChecker } from '../../checkers/quota.ts'
import { NAMESPACES } from '../universe.ts'
import type { Court } from './court.ts'

export function judgeQuotas({ view, convict }: Court): void {
  const checkers = NAMESPACES.map((namespace) => ({
    mark: `/${namespace}/`,
    checker: createQuotaChecker(namespace, (crime) => convict('quota', `in ${namespace} ${crime}`)),
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
