// The causes of a claim, read again whenever its status, cause or number of pods changes, and every few seconds while it is not
// ready.
import { useEffect, useState } from 'preact/hooks'
import type { Diagnosis } from '../../../protocol.ts'
import { Skeleton } from '../../components/empty.tsx'
import { WhyTree } from '../../components/why-tree.tsx'
import type { ClaimView } from '../../logic/claim-view.ts'
import { queryOf, useRequest } from '../../state/use-request.ts'

const REFRESH_MS = 5_000

export function WhyTab({ view }: { readonly view: ClaimView }) {
  const [round, setRound] = useState(0)
  const path = `/data/why${queryOf({ kind: 'pvc', namespace: view.namespace, name: view.name })}`
  const { value, problem } = useRequest<Diagnosis>(
    path,
    `${round} ${view.status.word} ${view.why?.reason} ${view.pods.length}`,
  )
  const isReady = value?.state === 'ready'
  useEffect(() => {
    if (isReady) return
    const timer = setInterval(() => setRound((count) => count + 1), REFRESH_MS)
    return () => clearInterval(timer)
  }, [isReady])
  if (value) return <WhyTree diagnosis={value} />
  return problem === undefined ? <Skeleton rows={4} /> : <p class="note">{problem}</p>
}
