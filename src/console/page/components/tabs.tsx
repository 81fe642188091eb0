// Tabs that follow the ARIA keyboard pattern: arrow keys move between them, Tab moves to the panel.
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface TabsProps<T extends string> {
  readonly label: string
  readonly tabs: Readonly<Record<T, string>>
  readonly selected: T
  readonly children: ComponentChildren
  onSelect(tab: T): void
}

export function Tabs<T extends string>({ label, tabs, selected, children, onSelect }: TabsProps<T>) {
  const id = useId()
  const names = Object.keys(tabs) as T[]
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    const next = names[(names.indexOf(selected) + step + names.length) % names.length]!
    onSelect(next)
    document.getElementById(`${id}-${next}`)?.focus()
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            class="tab"
            id={`${id}-${name}`}
            aria-selected={name === selected}
            aria-controls={`${id}-panel`}
            tabIndex={name === selected ? 0 : -1}
            onClick={() => onSelect(name)}
          >
            {tabs[name]}
          </button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the panel scrolls, and the keyboard must reach it */}
      <div class="drawer-body" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${selected}`} tabIndex={0}>
        {children}
      </div>
    </>
  )
}
