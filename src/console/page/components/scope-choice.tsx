// Lets users who may not list claims in all namespaces choose one namespace.
import { useSignal } from '@preact/signals'
import { info } from '../state/data.ts'
import { scope, setScope } from '../state/scope.ts'

export function ScopeChoice() {
  const namespace = useSignal('')
  const suggestion = info.state.value.value?.namespace ?? 'default'
  return (
    <form
      class="form-row scope"
      onSubmit={(event) => {
        event.preventDefault()
        setScope(namespace.value.trim() || suggestion)
      }}
    >
      <label class="field">
        <span>{scope === '' ? 'Show one namespace instead' : 'Show another namespace'}</span>
        <input
          class="input"
          value={namespace.value}
          placeholder={suggestion}
          onInput={({ currentTarget }) => {
            namespace.value = currentTarget.value
          }}
        />
      </label>
      <button type="submit" class="button button-primary">
        Show
      </button>
    </form>
  )
}
