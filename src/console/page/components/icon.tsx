// Stroke icons of 16 × 16 pixels. They are decorative: the text next to them carries the meaning.

const PATHS = {
  overview: 'M2.5 9.5 8 3l5.5 6.5M4.5 8v5h7V8',
  claims:
    'M2.5 4c0-1 2.5-1.8 5.5-1.8S13.5 3 13.5 4 11 5.8 8 5.8 2.5 5 2.5 4Zm0 0v8c0 1 2.5 1.8 5.5 1.8s5.5-.8 5.5-1.8V4M2.5 8c0 1 2.5 1.8 5.5 1.8s5.5-.8 5.5-1.8',
  capacity: 'M2.5 2.5h4.5v4.5H2.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5H2.5zM9 9h4.5v4.5H9z',
  nodes: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  operations: 'M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 2v3h-3M8 5v3l2 1.5',
  quotas: 'M2.5 11.5a5.5 5.5 0 0 1 11 0M8 11.5l2.5-4M2.5 11.5h11',
  drivers: 'M5.5 2v3M10.5 2v3M4 5h8v3a4 4 0 0 1-8 0zM8 12v2',
  bulk: 'M2.5 4h7M2.5 8h7M2.5 12h4M11 10l2.5-2.5L11 5',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1',
  check: 'M3 8.5 6.5 12 13 4.5',
  chevron: 'M6 3.5 10.5 8 6 12.5',
  link: 'M5 11 11 5M6.5 5H11v4.5',
  help: 'M6 6a2 2 0 1 1 2.8 1.8c-.6.3-.8.7-.8 1.4M8 11.8h.01M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z',
  star: 'm8 2 1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z',
} as const

type IconName = keyof typeof PATHS

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
)
