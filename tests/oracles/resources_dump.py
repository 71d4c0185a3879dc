"""Prints the provider resources that pefile, pyfwevt and pywrc find in an image, as JSON."""

import json
import sys

import pefile
import pyfwevt
import pywrc


def resources(path):
    """The resources, by the names or numbers of their types."""
    image = pefile.PE(path, fast_load=True)
    image.parse_data_directories([pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_RESOURCE"]])
    for kind in image.DIRECTORY_ENTRY_RESOURCE.entries:
        for name in kind.directory.entries:
            for language in name.directory.entries:
                place = language.data.struct
                yield {
                    "kind": str(kind.name) if kind.name else kind.id,
                    "name": name.id,
                    "language": language.id,
                    "data": image.get_data(place.OffsetToData, place.Size),
                }


def provider(found):
    events = [found.get_event(at) for at in range(found.number_of_events)]
    templates = [found.get_template(at) for at in range(found.number_of_templates)]
    return {
        "guid": found.identifier.lower(),
        "channels": found.number_of_channels,
        "keywords": found.number_of_keywords,
        "levels": found.number_of_levels,
        "maps": found.number_of_maps,
        "opcodes": found.number_of_opcodes,
        "tasks": found.number_of_tasks,
        "events": [
            {
                "id": event.identifier,
                "version": event.version,
                "message": event.message_identifier,
                "template": template_of(found, templates, event),
            }
            for event in events
        ],
        "templates": [items(template) for template in templates],
    }


def items(template):
    found = [template.get_item(at) for at in range(template.number_of_items)]
    return [
        [
            item.name,
            item.input_data_type,
            item.output_data_type,
            item.number_of_values,
            item.value_data_size,
        ]
        for item in found
    ]


def template_of(found, templates, event):
    """The fields of an event's template."""
    if not event.template_offset:
        return None
    return items(found.get_template_by_offset(event.template_offset))


def main(path):
    result = {"resources": [], "providers": [], "messages": {}}
    for resource in resources(path):
        data = resource.pop("data")
        result["resources"].append(resource)
        if resource["kind"] == "WEVT_TEMPLATE":
            manifest = pyfwevt.manifest()
            manifest.copy_from_byte_stream(data)
            result["providers"] = [
                provider(manifest.get_provider(at)) for at in range(manifest.number_of_providers)
            ]
        elif resource["kind"] == 11:
            table = pywrc.message_table_resource()
            table.copy_from_byte_stream(data)
            for at in range(table.get_number_of_messages()):
                number = table.get_message_identifier(at)
                result["messages"][number] = table.get_string(at)
    json.dump(result, sys.stdout)


main(sys.argv[1])
