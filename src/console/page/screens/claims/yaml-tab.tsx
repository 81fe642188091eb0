// The claim or its volume as YAML, without managed fields.
import { useSignal } from '@preact/signals'
import { Skeleton } from '../../components/empty.tsx'
import { YamlView } from '../../components/yaml-view.tsx'
import type { ClaimView } from '../../logic/claim-view.ts'
import { useRequest } from '../../state/use-request.ts'

export function YamlTab({ view }: { readonly view: ClaimView }) {
  const kind = useSignal<'claim' | 'volume'>('claim')
  const { namespace, name, claim } = view
  const path =
    kind.value === 'volume' && claim.volumeName
      ? `/k8s/api/v1/persistentvolumes/${claim.volumeName}`
      : `/k8s/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`
  const { value, problem } = useRequest<{ metadata?: { managedFields?: unknown } }>(path, claim)
  const button = (which: 'claim' | 'volume', label: string) => (
    <button
      type="button"
      class="chip"
      aria-pressed={kind.value === which}
      onClick={() => {
        kind.value = which
      }}
    >
      {label}
    </button>
  )
  return (
    <>
      {claim.volumeName !== undefined && (
        <div class="chips section">
          {button('claim', 'Claim')}
          {button('volume', 'Volume')}
        </div>
      )}
      {value ? (
        <YamlView object={{ ...value, metadata: { ...value.metadata, managedFields: undefined } }} />
      ) : problem === undefined ? (
        <Skeleton rows={10} />
      ) : (
        <p class="note">{problem}</p>
      )}
    </>
  )
}
