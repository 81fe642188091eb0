// Changes the VolumeAttributesClass of a claim.
import { useSignal } from '@preact/signals'
import { attributesWrite } from '../logic/claim-actions.ts'
import type { ClaimView } from '../logic/claim-view.ts'
import type { AttributesClassRow } from '../rows/storage.ts'
import { WriteDialog } from './write-dialog.tsx'

interface AttributesDialogProps {
  readonly view: ClaimView
  readonly candidates: readonly AttributesClassRow[]
  onClose(): void
}

export function AttributesDialog({ view: { claim }, candidates, onClose }: AttributesDialogProps) {
  const others = candidates.filter(({ name }) => name !== claim.attributesClass)
  const name = useSignal(others[0]?.name ?? '')
  const chosen = others.find((candidate) => candidate.name === name.value)
  return (
    <WriteDialog
      title={`Change attributes of ${claim.namespace}/${claim.name}`}
      write={chosen && attributesWrite(claim, chosen.name)}
      confirmLabel="Change"
      doneText={`Requested the attributes class ${name.value} for ${claim.namespace}/${claim.name}.`}
      onClose={onClose}
    >
      <label class="field">
        <span>Attributes class</span>
        <select
          class="input"
          value={name.value}
          onChange={({ currentTarget }) => {
            name.value = currentTarget.value
          }}
        >
          {others.map((candidate) => (
            <option key={candidate.uid} value={candidate.name}>
              {candidate.name}
            </option>
          ))}
        </select>
      </label>
      <dl class="facts">
        <dt>From</dt>
        <dd>{claim.attributesClass ?? 'none'}</dd>
        <dt>To</dt>
        <dd>{name.value}</dd>
        {Object.entries(chosen?.parameters ?? {}).map(([key, value]) => (
          <>
            <dt>{key}</dt>
            <dd>{value}</dd>
          </>
        ))}
      </dl>
      <p class="muted">The driver changes the volume while pods use it. The data of the volume does not change.</p>
    </WriteDialog>
  )
}
